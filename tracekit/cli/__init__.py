"""The command line: argv into library calls, errors into exit codes, one verb a file."""
