"""Private to spanreplay.replay."""
