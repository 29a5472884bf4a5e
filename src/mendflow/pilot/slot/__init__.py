"""A slot owns one attempt, outlives its agent, and keeps the result until the server has acknowledged it."""
