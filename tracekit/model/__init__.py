"""The nouns every room knows: tables, diagnostics, batches, object revisions.

Nothing here reads, writes or decides; only the standard library is imported.
"""
