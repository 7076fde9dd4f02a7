"""Links that are asked for more than they carry: what is lost, who gets how much (`make congestion`)."""
