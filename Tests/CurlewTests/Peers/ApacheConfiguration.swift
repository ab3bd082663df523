// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The lines that the configurations of all Apache processes have.
enum ApacheConfiguration {
    static let modules = "/usr/lib/apache2/modules"

    /// Returns the lines for the modules, the files and the certificate of a process.
    ///
    /// The log goes to standard output until the server has started, then to a file.
    static func base(_ folder: String, modules names: [String]) -> String {
        """
        ServerRoot \(folder)
        ServerName localhost
        DefaultRuntimeDir \(folder)
        PidFile \(folder)/httpd.pid
        Mutex pthread
        \(names.map { "LoadModule \($0)_module \(modules)/mod_\($0).so" }.joined(separator: "\n"))
        \(geteuid() == 0 ? "User www-data\nGroup www-data" : "")
        ErrorLog "|$sed -u /resuming.normal/q; exec cat > \(folder)/error.log"
        SSLCertificateFile \(folder)/chain.pem
        SSLCertificateKeyFile \(folder)/key.pem
        """
    }
}
