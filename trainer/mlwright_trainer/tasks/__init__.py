"""Task folders: read, prepared, checked."""
