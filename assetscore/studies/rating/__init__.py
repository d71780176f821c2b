"""The rating page: people judge textures blind, beside the game's own art; their answers become a votes file."""
