/* The editor of the playground: CodeMirror with P4's words and the compiler's problems. Bundled into ../editor.js:
 * npm install codemirror@6 @codemirror/language @codemirror/lint @codemirror/state @codemirror/view esbuild
 * npx esbuild editor.mjs --bundle --minify --format=esm --legal-comments=inline --outfile=../editor.js */
import {basicSetup} from "codemirror";
import {EditorView} from "@codemirror/view";
import {StreamLanguage} from "@codemirror/language";
import {setDiagnostics, lintGutter} from "@codemirror/lint";

const KEYWORDS = new Set(`abstract action actions apply break const continue control default else entries enum exit extern
for header header_union if in inout key match_kind out package parser return select state struct switch table
transition type typedef value_set`.split(/\s+/));
const TYPES = new Set(["bit", "bool", "error", "int", "list", "string", "tuple", "varbit", "void"]);
const ATOMS = new Set(["true", "false", "accept", "reject", "this", "_"]);

const p4 = StreamLanguage.define({
  startState: () => ({inComment: false}),
  token(stream, state) {
    if (state.inComment) {
      if (stream.skipTo("*/")) { stream.match("*/"); state.inComment = false; } else stream.skipToEnd();
      return "comment";
    }
    if (stream.eatSpace()) return null;
    if (stream.match("//")) { stream.skipToEnd(); return "comment"; }
    if (stream.match("/*")) { state.inComment = true; return "comment"; }
    if (stream.sol() && stream.match(/#\w+/)) return "meta";
    if (stream.match(/@\w+/)) return "meta";
    if (stream.match(/"(?:[^"\\]|\\.)*"?/)) return "string";
    if (stream.match(/(?:\d+[ws])?(?:0[xX][\da-fA-F_]+|0[bB][01_]+|\d[\d_]*)/)) return "number";
    const word = stream.match(/[A-Za-z_]\w*/);
    if (!word) { stream.next(); return null; }
    if (KEYWORDS.has(word[0])) return "keyword";
    if (TYPES.has(word[0])) return "typeName";
    return ATOMS.has(word[0]) ? "atom" : "variableName";
  },
  languageData: {commentTokens: {line: "//", block: {open: "/*", close: "*/"}}},
});

export function createEditor(parent, onChange) {
  const view = new EditorView({
    parent,
    extensions: [basicSetup, p4, lintGutter(), EditorView.updateListener.of(update => update.docChanged && onChange())],
  });
  return {
    text: () => view.state.doc.toString(),
    setText: text => view.dispatch({changes: {from: 0, to: view.state.doc.length, insert: text}}),
    show(problems) {
      const found = problems.filter(one => one.line >= 1 && one.line <= view.state.doc.lines).map(one => {
        const line = view.state.doc.line(one.line);
        const from = Math.min(line.from + one.column - 1, line.to);
        return {from, to: Math.min(from + one.length, line.to), severity: one.severity,
                message: one.hint ? one.message + "\n" + one.hint : one.message};
      });
      view.dispatch(setDiagnostics(view.state, found));
    },
    goTo(number) {
      const line = view.state.doc.line(Math.min(Math.max(number, 1), view.state.doc.lines));
      view.dispatch({selection: {anchor: line.from}, effects: EditorView.scrollIntoView(line.from, {y: "center"})});
      view.focus();
    },
  };
}
