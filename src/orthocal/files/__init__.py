"""Files on disk that are written whole or not at all, and never over something of the user's."""
