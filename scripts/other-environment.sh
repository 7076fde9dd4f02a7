# For setup-engines.sh and setup-blocks.sh: environments beside .venv, whose packages take minutes to fetch. They stay
# where they are while packages come, and are whole when their stamp says so: which Python, and which list.

# Settings of pip that would install elsewhere.
unset PIP_TARGET PIP_PREFIX PIP_ROOT PIP_REQUIRE_VIRTUALENV
export PIP_USER=0 PYTHONNOUSERSITE=1

stamp_of() { # ENVIRONMENT LOCK
  "$1/bin/python" -V
  cat "$2"
}

is_ready() { # ENVIRONMENT LOCK
  [ -x "$1/bin/python" ] && [ "$(stamp_of "$1" "$2" | cksum)" = "$(cat "$1/.ready" 2>/dev/null | cksum)" ]
}

mark_ready() { # ENVIRONMENT LOCK
  stamp_of "$1" "$2" >"$1/.ready.part"
  mv "$1/.ready.part" "$1/.ready"
}

# Makes the environment unless it is there and works: one of a Python that went, or that was ended while it was made,
# has no pip.
create() { # ENVIRONMENT PYTHON
  if ! "$1/bin/python" -m pip --version >/dev/null 2>&1; then
    echo "setup: creating the virtual environment $1"
    rm -rf "$1"
    "$2" -m venv "$1"
  fi
}
