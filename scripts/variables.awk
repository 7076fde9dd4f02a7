# Checks what make was told before anything begins: awk -f scripts/variables.awk commands/variables.tsv Makefile...
#
# Reads GOALS and GIVEN of the environment (targets, and variables of make's command line), the values in WEIR_
# variables, and the table of all commands' variables. Needs nothing that set-up installs. Names are refused with
# the nearest one that there is; numbers, names and yes or no are checked. What depends on several variables is
# left to the programs. Exit code 2 where something is refused.

BEGIN { FS = "\t" }

FILENAME == ARGV[1] {
  if (FNR == 1) next
  command[++rows] = $1; name[rows] = $2; kind[rows] = $3; many[rows] = $4; least[rows] = $5; most[rows] = $6; words[rows] = $7
  known[$2] = known[$2] == "" ? $1 : known[$2] ", " $1
  takes[$1] = 1
  next
}

/^[a-z0-9-]+:([^=]|$)/ { target[substr($0, 1, index($0, ":") - 1)] = 1 }

END {
  goals = split(ENVIRON["GOALS"], goal, " ")
  for (i = 1; i <= goals; i++) check_goal(goal[i], i > 1 ? goal[i - 1] : "")
  given = split(ENVIRON["GIVEN"], name_given, " ")
  for (i = 1; i <= given; i++) { said[name_given[i]] = 1; check_name(name_given[i]) }
  for (variable in ENVIRON) {
    plain = substr(variable, 6)
    if (variable ~ /^WEIR_/ && !(plain in said) && !(plain in known))
      refuse(variable " in the environment: there is no such variable" meant("WEIR_", nearest(plain, "")))
  }
  for (row = 1; row <= rows; row++) {
    if (!of_goal(row) || done[name[row]]++) continue
    if (ENVIRON["WEIR_" name[row]] != "") check_value(row, ENVIRON["WEIR_" name[row]])
    else if (command[row] != "*" && name[row] in ENVIRON && ENVIRON[name[row]] != "")
      print "note: " name[row] " of the environment is not read: say make " goal[1] " " name[row] "=..., or WEIR_" name[row]
  }
  if (refused) exit 2
}

function refuse(text) { print "error: " text > "/dev/stderr"; refused = 1 }

# "POLICY= lru" are a variable without a value and a target.
function check_goal(text, before) {
  if (text in target || text ~ /[.\/]/) return
  if (ENVIRON["EMPTY"] != "")
    refuse("there is no target " text "; and " ENVIRON["EMPTY"] "= has no value: write " ENVIRON["EMPTY"] "=" text ", without a blank")
  else if (text ~ /^-/) refuse(text ": write variables as NAME=value, without dashes" meant("", nearest(text, "")))
  else refuse("there is no target " text ": make help lists them")
}

function check_name(text,    row, plain) {
  plain = text
  sub(/^--*/, "", plain)
  gsub(/-/, "_", plain)
  for (row = 1; row <= rows; row++) if (of_goal(row) && name[row] == text) return
  if (index(" PYTHON CC CFLAGS LCS_HUB_CACHE GOALS GIVEN EMPTY ", " " text " ")) return
  if (text in known) refuse(text ": make " goal[1] " has no such variable; it is one of make " first_three(known[text]))
  else refuse(text ": make " goal[1] " has no such variable" meant("", nearest(plain, "goal")))
}

function first_three(list,    parts, count) {
  count = split(list, parts, ", ")
  return count <= 3 ? list : parts[1] ", " parts[2] ", " parts[3] " and others"
}

function meant(prefix, found) { return found == "" ? "" : "; did you mean " prefix found "?" }

function of_goal(row,    i) {
  if (command[row] == "*") return 1
  for (i = 1; i <= goals; i++)
    if (command[row] == goal[i] || command[row] == goal[i] " " ENVIRON["WEIR_WHAT"]) return 1
  return 0
}

# Of the goals' variables, or of all where there is none of them that is near.
function nearest(text, of,    row, best, found, far, wanted) {
  wanted = toupper(text)
  sub(/^--*/, "", wanted)
  sub(/^WEIR_/, "", wanted)
  gsub(/-/, "_", wanted)
  sub(/=.*/, "", wanted)
  best = 1 + int(length(wanted) / 3)
  for (row = 1; row <= rows; row++) {
    if (of == "goal" && !of_goal(row)) continue
    far = distance(wanted, name[row])
    if (far < best || (far == best && found == "" )) { best = far; found = name[row] }
  }
  return found
}

# Changes, additions and removals of a letter, and exchanges of two neighbours, that make a of b.
function distance(a, b,    i, j, cost, row, least_one) {
  for (i = 0; i <= length(a); i++) row[i, 0] = i
  for (j = 0; j <= length(b); j++) row[0, j] = j
  for (i = 1; i <= length(a); i++)
    for (j = 1; j <= length(b); j++) {
      cost = substr(a, i, 1) != substr(b, j, 1)
      least_one = row[i - 1, j - 1] + cost
      if (row[i - 1, j] + 1 < least_one) least_one = row[i - 1, j] + 1
      if (row[i, j - 1] + 1 < least_one) least_one = row[i, j - 1] + 1
      if (i > 1 && j > 1 && substr(a, i, 1) == substr(b, j - 1, 1) && substr(a, i - 1, 1) == substr(b, j, 1) &&
          row[i - 2, j - 2] + 1 < least_one)
        least_one = row[i - 2, j - 2] + 1
      row[i, j] = least_one
    }
  return row[length(a), length(b)]
}

function check_value(row, text,    parts, count, i) {
  if (many[row] == "") { check_one(row, trimmed(text)); return }
  count = split(text, parts, ",")
  for (i = 1; i <= count; i++) check_one(row, trimmed(parts[i]))
}

function trimmed(text) { gsub(/^[ \t]+|[ \t]+$/, "", text); return text }

function check_one(row, text,    wanted) {
  if (text == "" && many[row] == "") return
  if (words[row] != "" && index("," words[row] ",", "," text ",")) return
  wanted = ""
  if (kind[row] == "name") { refuse(name[row] ": there is no '" text "': " advice(text, words[row])); return }
  if (kind[row] == "file" || kind[row] == "name_or_file") {
    if (!system("test -e \"$WEIR_" name[row] "\"")) return
    if (kind[row] == "file") refuse(name[row] ": there is no file " text)
    else refuse(name[row] ": there is no '" text "': " advice(text, words[row]) ", or an existing folder")
    return
  }
  if (kind[row] == "yes_or_no") {
    if (tolower(text) !~ /^(1|0|yes|no|true|false|on|off|y|n|t|f)$/) wanted = "yes or no (1 or 0)"
  } else if (kind[row] == "whole" && text !~ /^[-+]?[0-9][0-9_]*$/) wanted = "a whole number"
  else if (kind[row] == "number" && text !~ /^[-+]?([0-9][0-9_]*[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?$/) wanted = "a number"
  else if ((kind[row] == "whole" || kind[row] == "number") && least[row] != "") {
    gsub(/_/, "", text)
    if (text + 0 < least[row] + 0 || text + 0 > most[row] + 0) wanted = "from " least[row] " to " most[row]
  }
  if (wanted == "") return
  if (words[row] != "") wanted = wanted ", or " spaced(words[row])
  refuse(name[row] ": must be " wanted ", not " (wanted ~ /^from/ ? text : "'" text "'"))
}

function advice(text, list,    parts, count, i, far, best, found) {
  count = split(list, parts, ",")
  best = 1 + int(length(text) / 3)
  for (i = 1; count > 2 && i <= count; i++) {
    far = distance(tolower(text), parts[i])
    if (far < best || (far == best && found == "")) { best = far; found = parts[i] }
  }
  return (found == "" ? "" : "did you mean " found "? ") "choose one of " spaced(list)
}

function spaced(list) { gsub(/,/, ", ", list); return list }
