"""One module a section: rows of its queries in, typed page values out."""
