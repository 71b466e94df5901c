"""The paper, figure by figure: what it shows computed anew, drawn, and what it says of it
checked. A module a figure, named by the paper's label."""
