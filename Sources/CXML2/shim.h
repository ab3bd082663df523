// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
#ifndef CURLEW_CXML2_SHIM_H
#define CURLEW_CXML2_SHIM_H
#include <libxml/xmlversion.h>
// Else its headers bring those of the system's ICU, whose types are others than those of the ICU within Foundation: a
// program that imports both modules would not compile. It is for the inside of encoders, which nobody here looks at.
#undef LIBXML_ICU_ENABLED
#include <libxml/parser.h>
#include <libxml/parserInternals.h>
#include <libxml/SAX2.h>
#include <libxml/tree.h>
#include <libxml/xmlsave.h>
#include <libxml/xpath.h>
#include <libxml/xpathInternals.h>

/// Lets go of memory of libxml2's: `xmlFree` is a variable that can be changed, which Swift does not import.
static inline void curlew_xml_free(void *memory) { xmlFree(memory); }

/// What marks a handler that knows namespaces (`XML_SAX2_MAGIC`).
static inline unsigned int curlew_xml_sax2(void) { return XML_SAX2_MAGIC; }
#endif
