"""What progress says about the rest of a finite input. Pure: figures and times come in, estimates go out."""
