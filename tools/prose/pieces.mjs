// Extracts the texts for people from source files: strings with more than one word, and comments, each with the line where it begins.
import { execFileSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import typescript from 'typescript'

const PYTHON_PIECES = join(dirname(fileURLToPath(import.meta.url)), 'pieces.py')
const hasWords = (text) => /\S\s+\S/.test(text)

/** The strings, the parts of templates and the comments of a TypeScript or JavaScript file. */
export function piecesOfScript(path, text) {
  const source = typescript.createSourceFile(path, text, typescript.ScriptTarget.Latest, true)
  const lineAt = (position) => source.getLineAndCharacterOfPosition(position).line + 1
  const pieces = []
  const comments = new Map()
  const visit = (node) => {
    const isText = typescript.isStringLiteralLike(node) || typescript.isTemplateHead(node)
    const isRest = typescript.isTemplateMiddle(node) || typescript.isTemplateTail(node)
    if ((isText || isRest) && hasWords(node.text))
      pieces.push({ kind: 'string', line: lineAt(node.getStart()), text: node.text })
    for (const range of [
      ...(typescript.getLeadingCommentRanges(text, node.pos) ?? []),
      ...(typescript.getTrailingCommentRanges(text, node.end) ?? []),
    ])
      if (!isInside(node, range)) comments.set(range.pos, range.end)
    typescript.forEachChild(node, visit)
  }
  visit(source)
  for (const [start, end] of comments)
    pieces.push({ kind: 'comment', line: lineAt(start), text: text.slice(start, end) })
  return pieces
}

/** The scanner can mistake text of a template for a comment. */
function isInside(node, { pos }) {
  return typescript.isTemplateLiteralToken(node) && pos > node.getStart() && pos < node.end
}

/** Returns the pieces of Python files, whose strings include docstrings: a list for each path, in order. */
export function piecesOfPython(paths) {
  if (paths.length === 0) return []
  const output = execFileSync('python3', [PYTHON_PIECES, ...paths], { encoding: 'utf8', maxBuffer: 2 ** 28 })
  return JSON.parse(output).map((pieces) =>
    pieces
      .filter(([, kind, text]) => kind === 'comment' || hasWords(text))
      .map(([line, kind, text]) => ({ kind, line, text })),
  )
}
