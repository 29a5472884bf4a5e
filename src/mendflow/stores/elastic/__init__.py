"""A store in Elasticsearch or OpenSearch."""
