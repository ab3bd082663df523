// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
#ifndef CURLEW_CXML2_SHIM_H
#define CURLEW_CXML2_SHIM_H
#include <libxml/xmlversion.h>
// With LIBXML_ICU_ENABLED, the headers of libxml2 include those of the system's ICU. Their types differ from those of
// the ICU inside Foundation, so a program that imports both modules would not compile. The macro only adds private
// members of encoders, which Curlew does not access.
#undef LIBXML_ICU_ENABLED
#include <libxml/HTMLparser.h>
#include <libxml/HTMLtree.h>
#include <libxml/parser.h>
#include <libxml/parserInternals.h>
#include <libxml/SAX2.h>
#include <libxml/tree.h>
#include <libxml/xmlsave.h>
#include <libxml/xpath.h>
#include <libxml/xpathInternals.h>

/// Frees memory that libxml2 allocated. Swift does not import `xmlFree`, because it is a mutable variable.
static inline void curlew_xml_free(void *memory) { xmlFree(memory); }

/// Returns the marker of a handler that supports namespaces (`XML_SAX2_MAGIC`).
static inline unsigned int curlew_xml_sax2(void) { return XML_SAX2_MAGIC; }
#endif
