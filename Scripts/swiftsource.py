"""Shared code of the lints: Swift text without comments and strings, findings, and the self-test's temporary tree."""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TYPE = re.compile(
    r"(?:^|[\s})])(?:struct|class|enum|actor|protocol|typealias|extension)\s+(?!func\b|var\b|let\b|subscript\b)([A-Za-z_][\w.]*)"
)


class Finding:
    """A broken rule in a line; `rule` is its short name, which the self-tests search for. Warnings do not fail a lint."""

    def __init__(self, path, line, rule, message, is_warning=False):
        self.path, self.line, self.rule, self.message, self.is_warning = path, line, rule, message, is_warning

    def __str__(self):
        return f"{self.path}:{self.line}: {'warning: ' if self.is_warning else ''}{self.message} [{self.rule}]"


class Source:
    """A source file: `text` is the original; `code` has the same length with comments and string contents blanked."""

    def __init__(self, root, file):
        self.path = file.relative_to(root).as_posix()
        self.text = file.read_text(encoding="utf-8")
        self.code = blanked(self.text) if file.suffix == ".swift" else self.text
        self.lines = self.text.split("\n")
        self.code_lines = self.code.split("\n")

    def line_at(self, offset):
        return self.code.count("\n", 0, offset) + 1


def sources(root, *folders, suffixes=(".swift",)):
    """Yields every source file below the folders, in a stable order."""
    for folder in folders:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in suffixes and file.is_file():
                yield Source(root, file)


TEST = re.compile(r"@Test\b")
FUNC = re.compile(r"\bfunc\s+(`[^`]+`|\w+)")


def test_functions(root):
    """Yields (source, names of the types around it, name) of every test function in Tests."""
    for source in sources(root, "Tests"):
        suites = []
        for found in TYPE.finditer(source.code):
            opening = source.code.find("{", found.end())
            named = "typealias" not in found.group() and "func" not in source.code[found.end():opening]
            if opening >= 0 and named:
                suites.append((found.start(), body_end(source.code, opening), found.group(1)))
        for mark in TEST.finditer(source.code):
            function = FUNC.search(source.code, mark.end())
            if function:
                path = [suite for start, end, suite in suites if start < mark.start() < end]
                yield source, path, function.group(1).strip("`")


STRING = re.compile(r'(#*)("""|")')


def blanked(text):
    """Replaces comments and string contents with spaces; keeps code inside `\\( … )` and every newline."""
    out, at = list(text), 0

    def blank(start, end):
        for index in range(start, min(end, len(out))):
            if out[index] != "\n":
                out[index] = " "

    def comment(start):
        if text.startswith("//", start):
            end = text.find("\n", start)
            return len(text) if end < 0 else end
        depth, index = 1, start + 2
        while index < len(text) and depth:
            if text.startswith("/*", index):
                depth, index = depth + 1, index + 2
            elif text.startswith("*/", index):
                depth, index = depth - 1, index + 2
            else:
                index += 1
        return index

    def string(start, hashes, quote):
        index, close, escape = start + len(hashes) + len(quote), quote + hashes, "\\" + hashes
        blank(start, index)
        while index < len(text) and not text.startswith(close, index):
            if quote == '"' and text[index] == "\n":
                return index
            if text.startswith(escape + "(", index):
                blank(index, index + len(escape))
                index = code(index + len(escape) + 1, nested=True)
            elif text.startswith(escape, index):
                blank(index, index + len(escape) + 1)
                index += len(escape) + 1
            else:
                blank(index, index + 1)
                index += 1
        blank(index, index + len(close))
        return index + len(close)

    def code(index, nested):
        depth = 1
        while index < len(text):
            if text.startswith(("//", "/*"), index):
                end = comment(index)
                blank(index, end)
                index = end
                continue
            found = STRING.match(text, index)
            if found:
                index = string(index, found.group(1), found.group(2))
                continue
            depth += {"(": 1, ")": -1}.get(text[index], 0)
            index += 1
            if nested and depth == 0:
                return index
        return index

    while at < len(text):
        at = code(at, nested=False)
    return "".join(out)


def body_end(code, opening):
    """Returns the offset just after the brace that closes the one at `opening`."""
    depth = 0
    for index in range(opening, len(code)):
        depth += {"{": 1, "}": -1}.get(code[index], 0)
        if depth == 0:
            return index + 1
    return len(code)


def depths(code):
    """Returns the brace depth at the start of each line."""
    depth, result = 0, []
    for line in code.split("\n"):
        result.append(depth)
        depth += line.count("{") - line.count("}")
    return result


def self_test(lint, good, bad):
    """Proves that `lint(root)` accepts the files `good` and finds `rule` for each (rule, path, text) of `bad`."""
    wrong = [f"{finding}: found in good input" for finding in findings_of(lint, good)]
    for rule, path, text in bad:
        found = {finding.rule for finding in findings_of(lint, {**good, path: text})}
        if found != {rule}:
            wrong.append(f"rule {rule} with {path}: found {sorted(found)} in {text!r}")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


def findings_of(lint, files):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        return list(lint(root))


def main(name, lint, good, bad, summary):
    """Runs a lint from the command line: with `--self-test` its self-test, otherwise the check of the repository."""
    if sys.argv[1:] == ["--self-test"]:
        status = self_test(lint, good, bad)
        print(f"{name} --self-test: {len(bad)} broken inputs {'judged wrongly' if status else 'found'}")
        return status
    if sys.argv[1:]:
        print(f"usage: Scripts/{name} [--self-test]", file=sys.stderr)
        return 2
    findings = list(lint(ROOT))
    for finding in findings:
        print(finding)
    errors = [finding for finding in findings if not finding.is_warning]
    print(f"{name}: {len(errors)} findings" if errors else f"{name}: {summary(ROOT)}, fine")
    return 1 if errors else 0


def pixbuf_flags():
    """Returns the flags for the headers of gdk-pixbuf."""
    shown = subprocess.run(
        ["pkg-config", "--cflags-only-I", "gdk-pixbuf-2.0"], check=True, capture_output=True, text=True).stdout
    return [part for flag in shown.split() for part in ("-Xcc", flag)]
