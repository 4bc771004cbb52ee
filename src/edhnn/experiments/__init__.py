"""The paper's evidence: experiments as data, a runner whose records last, and a page made from records alone."""
