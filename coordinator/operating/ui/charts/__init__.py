"""Draws charts as SVG, from numbers and names alone; colours are those of the style sheet. Pure."""
