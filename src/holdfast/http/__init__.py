"""What the servers of Holdfast share: the check of requests, listening, stopping."""
