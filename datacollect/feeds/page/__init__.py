"""The page that shows feeds while they are sent."""
