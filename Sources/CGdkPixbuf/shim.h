// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
#ifndef CURLEW_CGDKPIXBUF_SHIM_H
#define CURLEW_CGDKPIXBUF_SHIM_H
// The functions for animations are deprecated since gdk-pixbuf 2.44, which has no replacement for them.
#define GDK_PIXBUF_DISABLE_DEPRECATION_WARNINGS
#define GLIB_DISABLE_DEPRECATION_WARNINGS
#include <gdk-pixbuf/gdk-pixbuf.h>

/// Connects a function that a loader calls with the size of the image, before it takes memory for the pixels.
static inline void curlew_pixbuf_on_size(
    GdkPixbufLoader *loader, void (*function)(GdkPixbufLoader *, int, int, gpointer), gpointer context) {
    g_signal_connect(loader, "size-prepared", G_CALLBACK(function), context);
}

/// Returns the iterator of an animation at the time 0.
static inline GdkPixbufAnimationIter *curlew_pixbuf_frames(GdkPixbufAnimation *animation) {
    GTimeVal start = {0, 0};
    return gdk_pixbuf_animation_get_iter(animation, &start);
}

/// Moves an iterator to the frame at a time in milliseconds after the start.
static inline gboolean curlew_pixbuf_advance(GdkPixbufAnimationIter *iterator, gint64 milliseconds) {
    GTimeVal time = {(glong)(milliseconds / 1000), (glong)(milliseconds % 1000) * 1000};
    return gdk_pixbuf_animation_iter_advance(iterator, &time);
}

/// Returns whether an error says that there is no memory.
static inline gboolean curlew_pixbuf_is_out_of_memory(const GError *error) {
    return g_error_matches(error, GDK_PIXBUF_ERROR, GDK_PIXBUF_ERROR_INSUFFICIENT_MEMORY);
}

/// Returns whether an error says that there is no decoder or encoder for the format.
static inline gboolean curlew_pixbuf_is_unsupported(const GError *error) {
    return g_error_matches(error, GDK_PIXBUF_ERROR, GDK_PIXBUF_ERROR_UNKNOWN_TYPE)
        || g_error_matches(error, GDK_PIXBUF_ERROR, GDK_PIXBUF_ERROR_UNSUPPORTED_OPERATION);
}
#endif
