"""Where the rooms meet: collect, replay, look, query and report, one module each."""
