"""The client of the pool: fetches, puts and looks up blocks, within windows."""
