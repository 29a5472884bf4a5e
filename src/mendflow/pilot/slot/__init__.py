"""A slot owns one attempt, outlives its agent, and keeps the result until it was judged."""
