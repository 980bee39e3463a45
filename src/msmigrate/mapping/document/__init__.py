"""The mapping table as a document for people (docs/mapping.md): made from the rows, never written by hand."""
