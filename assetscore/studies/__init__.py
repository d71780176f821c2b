"""Studies: choosing alpha and k, agreeing with people, comparing builds."""
