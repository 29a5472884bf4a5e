"""Values of Python as plain data and back, without pickle.

What a function returns is written as JSON that says what it was, and read again as the same; what is large lies beside
it in files. Nothing that is read names code: classes are those that the function's own annotations and module have."""
