// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

// The types and extensions come from IANA's registry of media types, whose templates list file extensions (RFC 6838
// §4.12), and from the RFCs that the registry names; unregistered types (x-…) are those that servers commonly send.

extension MediaType {
    /// Creates the media type for the extension of a file's name; `application/octet-stream` for an unknown extension.
    ///
    /// The table is built in and does not depend on the machine. Case is ignored, and the file is not read.
    /// - Parameter path: A file name or a path.
    public init(forFile path: String) { self = MediaType.known(forFile: path) ?? .octetStream }

    /// Returns the media type for the extension of a file's name; nil for an unknown extension.
    static func known(forFile path: String) -> MediaType? {
        let name = path.utf8.split(separator: UInt8(ascii: "/")).last ?? path.utf8[...]
        guard let dot = name.lastIndex(of: UInt8(ascii: ".")), dot != name.startIndex else { return nil }
        let suffix = Substring(name[name.index(after: dot)...]).lowercased()
        return byExtension[suffix].flatMap { MediaType($0) }
    }

    /// Media types by extension in lower case.
    static let byExtension: [String: String] = {
        var types: [String: String] = [:]
        for line in table.split(separator: "\n") {
            let words = line.split(separator: " ").map(String.init)
            for suffix in words.dropFirst() { types[suffix] = words[0] }
        }
        return types
    }()

    /// On each line, a type and the extensions of its files.
    private static let table = """
        application/andrew-inset ez
        application/atom+xml atom
        application/dash+xml mpd
        application/dicom dcm
        application/ecmascript es ecma
        application/epub+zip epub
        application/fhir+json fhir
        application/geo+json geojson
        application/geopackage+sqlite3 gpkg
        application/gml+xml gml
        application/gpx+xml gpx
        application/gzip gz
        application/java-archive jar war ear
        application/json json map
        application/json5 json5
        application/jsonl jsonl
        application/ld+json jsonld
        application/manifest+json webmanifest
        application/mathml+xml mathml
        application/mbox mbox
        application/mp4 mp4s m4p
        application/msword doc dot
        application/n-quads nq
        application/n-triples nt
        application/octet-stream bin so dmg iso img deb
        application/ogg ogx
        application/pdf pdf
        application/pgp-encrypted pgp gpg
        application/pgp-signature asc sig
        application/pkcs10 p10
        application/pkcs7-mime p7m p7c
        application/pkcs7-signature p7s
        application/pkcs8 p8
        application/pkix-cert cer
        application/pkix-crl crl
        application/postscript ps ai eps
        application/rdf+xml rdf owl
        application/rss+xml rss
        application/rtf rtf
        application/sparql-query rq
        application/sparql-results+json srj
        application/sparql-results+xml srx
        application/sql sql
        application/tei+xml tei
        application/toml toml
        application/trig trig
        application/ttml+xml ttml
        application/vnd.android.package-archive apk
        application/vnd.apache.parquet parquet
        application/vnd.apple.installer+xml mpkg
        application/vnd.apple.keynote key
        application/vnd.apple.mpegurl m3u8
        application/vnd.apple.numbers numbers
        application/vnd.apple.pages pages
        application/vnd.debian.binary-package udeb
        application/vnd.google-earth.kml+xml kml
        application/vnd.google-earth.kmz kmz
        application/vnd.mapbox-vector-tile mvt
        application/vnd.mozilla.xul+xml xul
        application/vnd.ms-cab-compressed cab
        application/vnd.ms-excel xls xlt xla
        application/vnd.ms-excel.sheet.macroenabled.12 xlsm
        application/vnd.ms-fontobject eot
        application/vnd.ms-htmlhelp chm
        application/vnd.ms-outlook msg
        application/vnd.ms-powerpoint ppt pps pot
        application/vnd.ms-powerpoint.presentation.macroenabled.12 pptm
        application/vnd.ms-word.document.macroenabled.12 docm
        application/vnd.oasis.opendocument.chart odc
        application/vnd.oasis.opendocument.formula odf
        application/vnd.oasis.opendocument.graphics odg
        application/vnd.oasis.opendocument.presentation odp
        application/vnd.oasis.opendocument.spreadsheet ods
        application/vnd.oasis.opendocument.spreadsheet-template ots
        application/vnd.oasis.opendocument.text odt
        application/vnd.oasis.opendocument.text-template ott
        application/vnd.openxmlformats-officedocument.presentationml.presentation pptx
        application/vnd.openxmlformats-officedocument.presentationml.slideshow ppsx
        application/vnd.openxmlformats-officedocument.presentationml.template potx
        application/vnd.openxmlformats-officedocument.spreadsheetml.sheet xlsx
        application/vnd.openxmlformats-officedocument.spreadsheetml.template xltx
        application/vnd.openxmlformats-officedocument.wordprocessingml.document docx
        application/vnd.openxmlformats-officedocument.wordprocessingml.template dotx
        application/vnd.rar rar
        application/vnd.sqlite3 sqlite sqlite3 db
        application/vnd.tcpdump.pcap pcap cap
        application/vnd.visio vsd vst vss
        application/wasm wasm
        application/x-7z-compressed 7z
        application/x-bittorrent torrent
        application/x-bzip2 bz2
        application/x-csh csh
        application/x-httpd-php php
        application/x-iso9660-image cdr
        application/x-lzip lz
        application/x-ndjson ndjson
        application/x-pem-file pem
        application/x-perl pl pm
        application/x-pkcs12 p12 pfx
        application/x-plist plist
        application/x-protobuf pb
        application/x-rpm rpm
        application/x-sh sh
        application/x-shockwave-flash swf
        application/x-subrip srt
        application/x-tar tar
        application/x-tex tex
        application/x-texinfo texinfo texi
        application/x-x509-ca-cert crt der
        application/x-xz xz
        application/xhtml+xml xhtml xht
        application/xml xml xsl xsd
        application/xml-dtd dtd
        application/xslt+xml xslt
        application/yaml yaml yml
        application/zip zip
        application/zstd zst
        audio/aac aac
        audio/ac3 ac3
        audio/amr amr
        audio/basic au snd
        audio/flac flac
        audio/matroska mka
        audio/midi mid midi rmi
        audio/mp4 m4a m4b
        audio/mpeg mp3 mp2 mpga
        audio/ogg ogg oga opus spx
        audio/webm weba
        audio/x-aiff aif aiff aifc
        audio/x-caf caf
        audio/x-mpegurl m3u
        audio/x-ms-wma wma
        audio/x-wav wav
        font/collection ttc
        font/otf otf
        font/ttf ttf
        font/woff woff
        font/woff2 woff2
        image/apng apng
        image/avif avif
        image/bmp bmp dib
        image/emf emf
        image/fits fits fit
        image/gif gif
        image/heic heic
        image/heic-sequence heics
        image/heif heif
        image/jp2 jp2
        image/jpeg jpg jpeg jpe jfif
        image/jpm jpm
        image/jxl jxl
        image/ktx ktx
        image/ktx2 ktx2
        image/png png
        image/svg+xml svg svgz
        image/tiff tif tiff
        image/vnd.adobe.photoshop psd
        image/vnd.djvu djvu djv
        image/vnd.dwg dwg
        image/vnd.dxf dxf
        image/vnd.microsoft.icon ico cur
        image/webp webp
        image/wmf wmf
        image/x-adobe-dng dng
        image/x-canon-cr2 cr2
        image/x-nikon-nef nef
        image/x-portable-bitmap pbm
        image/x-portable-graymap pgm
        image/x-portable-pixmap ppm
        image/x-tga tga
        message/rfc822 eml mht mhtml
        model/3mf 3mf
        model/gltf+json gltf
        model/gltf-binary glb
        model/mtl mtl
        model/obj obj
        model/step stp step
        model/stl stl
        model/vnd.usdz+zip usdz
        text/cache-manifest appcache
        text/calendar ics ifb
        text/css css
        text/csv csv
        text/html html htm
        text/javascript js mjs cjs
        text/markdown md markdown
        text/n3 n3
        text/plain txt text log conf ini
        text/sgml sgml sgm
        text/tab-separated-values tsv
        text/troff roff man me ms
        text/turtle ttl
        text/vcard vcf vcard
        text/vtt vtt
        text/x-c c cc cxx cpp h hh hpp
        text/x-diff diff patch
        text/x-java-source java
        text/x-python py
        text/x-rst rst
        text/x-swift swift
        video/3gpp 3gp
        video/3gpp2 3g2
        video/matroska mkv
        video/mj2 mj2
        video/mp2t ts m2ts mts
        video/mp4 mp4 m4v mp4v
        video/mpeg mpeg mpg mpe m1v m2v
        video/ogg ogv
        video/quicktime mov qt
        video/webm webm
        video/x-flv flv
        video/x-ms-wmv wmv
        video/x-msvideo avi
        """
}
