// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
#ifndef CURLEW_BENCH_CPIXBUF_SHIM_H
#define CURLEW_BENCH_CPIXBUF_SHIM_H
#include <gdk-pixbuf/gdk-pixbuf.h>

static inline void bench_pixbuf_fit(GdkPixbufLoader *loader, int width, int height, gpointer side) {
    double across = (double)GPOINTER_TO_INT(side) / width, down = (double)GPOINTER_TO_INT(side) / height;
    double factor = across < down ? across : down;
    if (factor < 1)
        gdk_pixbuf_loader_set_size(loader, (int)(width * factor + 0.5), (int)(height * factor + 0.5));
}

/// Decodes a file in memory to a thumbnail, as a plain C program does; returns its width.
static inline int bench_pixbuf_thumbnail(const unsigned char *bytes, size_t count, int side) {
    GdkPixbufLoader *loader = gdk_pixbuf_loader_new();
    g_signal_connect(loader, "size-prepared", G_CALLBACK(bench_pixbuf_fit), GINT_TO_POINTER(side));
    int width = -1;
    if (gdk_pixbuf_loader_write(loader, bytes, count, NULL) && gdk_pixbuf_loader_close(loader, NULL)) {
        GdkPixbuf *pixbuf = gdk_pixbuf_loader_get_pixbuf(loader);
        if (pixbuf)
            width = gdk_pixbuf_get_width(pixbuf);
    }
    g_object_unref(loader);
    return width;
}
#endif
