"""What people search by: the names, what they mean in a document, and a condition in CEL made ready for a store."""
