// The regular expressions of TypeScript files: literals, and `new RegExp` of texts that are constants.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import ts from 'typescript'

/** What stands for a part of an expression that only a run knows, such as the id of a job. */
const HOLE = 'x'

/** @returns the expressions as `{ file, line, source, flags }`; `source` is null if nothing of it is constant */
export function patternsOfTypeScript(root, files) {
  const sources = new Map()
  const open = (file) => {
    if (!sources.has(file)) {
      const text = readFileSync(join(root, file), 'utf8')
      sources.set(file, ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true))
    }
    return sources.get(file)
  }
  return files.flatMap((file) => {
    const found = []
    const visit = (node) => {
      const read = patternOf(node, (name) => constantOf(name, { root, file, open }))
      if (read !== undefined) {
        const { line } = open(file).getLineAndCharacterOfPosition(node.getStart())
        found.push({ file, line: line + 1, ...read })
      }
      ts.forEachChild(node, visit)
    }
    visit(open(file))
    return found
  })
}

function patternOf(node, constant) {
  if (ts.isRegularExpressionLiteral(node)) return partsOf(node.text)
  const isMade =
    (ts.isNewExpression(node) || ts.isCallExpression(node)) && node.expression.getText() === 'RegExp'
  if (!isMade) return undefined
  const [source, flags] = node.arguments ?? []
  return {
    source: textOf(source, constant) ?? null,
    flags: flags === undefined ? '' : (textOf(flags, constant) ?? ''),
  }
}

function partsOf(literal) {
  const end = literal.lastIndexOf('/')
  return { source: literal.slice(1, end), flags: literal.slice(end + 1) }
}

/** The text of an expression; undefined if only a run knows it. */
function textOf(node, constant) {
  const inner = (each) => textOf(each, constant)
  if (node === undefined) return undefined
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return node.text
  if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node)) return inner(node.expression)
  if (ts.isTaggedTemplateExpression(node) && node.tag.getText() === 'String.raw')
    return ts.isNoSubstitutionTemplateLiteral(node.template)
      ? node.template.rawText
      : templateOf(node.template, inner, 'rawText')
  if (ts.isTemplateExpression(node)) return templateOf(node, inner, 'text')
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken)
    return `${inner(node.left) ?? HOLE}${inner(node.right) ?? HOLE}`
  if (ts.isPropertyAccessExpression(node) && node.name.text === 'source') return inner(node.expression)
  if (ts.isRegularExpressionLiteral(node)) return partsOf(node.text).source
  return ts.isIdentifier(node) ? constant(node.text) : undefined
}

function templateOf(node, inner, part) {
  const spans = node.templateSpans.map(
    ({ expression, literal }) => `${inner(expression) ?? HOLE}${literal[part]}`,
  )
  return `${node.head[part]}${spans.join('')}`
}

/** The text of a constant of a file, or of one that it imports. */
function constantOf(name, { root, file, open }) {
  for (const statement of open(file).statements) {
    if (ts.isVariableStatement(statement))
      for (const { name: declared, initializer } of statement.declarationList.declarations)
        if (declared.getText() === name)
          return textOf(initializer, (other) =>
            other === name ? undefined : constantOf(other, { root, file, open }),
          )
    const imported = importOf(statement, name)
    const path = imported === undefined ? undefined : join(dirname(file), `${imported.from}.ts`)
    if (path !== undefined && existsSync(join(root, path)))
      return constantOf(imported.name, { root, file: path, open })
  }
  return undefined
}

function importOf(statement, name) {
  if (!ts.isImportDeclaration(statement)) return undefined
  const bindings = statement.importClause?.namedBindings
  if (bindings === undefined || !ts.isNamedImports(bindings)) return undefined
  const element = bindings.elements.find((each) => each.name.text === name)
  return (
    element && { name: (element.propertyName ?? element.name).text, from: statement.moduleSpecifier.text }
  )
}
