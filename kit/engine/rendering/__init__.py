"""Plans and runs as text, pages, frames and evidence."""
