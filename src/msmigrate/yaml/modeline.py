"""The comment by which editors find the schema of a file: `# yaml-language-server: $schema=…`."""

import re

_MODELINE = re.compile(r"#\s*yaml-language-server\s*:\s*\$schema\s*=")


def modeline(schema: str) -> str:
    """The comment line that names a schema file, as yaml-language-server reads it."""
    return f"# yaml-language-server: $schema={schema}"


def is_modeline(comment: str) -> bool:
    """Whether a comment line names a schema: that of the file it stands in, so it does not move to another file."""
    return bool(_MODELINE.match(comment.strip()))
