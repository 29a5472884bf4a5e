"""What is known of recovery without doing anything: what a fault means, how a job's conversation runs, which patterns
there are, and what a job becomes when it is submitted again with changes."""
