"""What the result of a job was made from, and whether it may stand for the result of another job."""
