"""`python -m msmigrate.mapping.document > docs/mapping.md` writes the document anew."""

import sys

from msmigrate.mapping.document.whole import mapping_document

sys.stdout.buffer.write(mapping_document().encode())
