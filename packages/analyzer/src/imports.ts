/** Import statements. */
import type { Frame, Interpreter } from './interpreter'
import { childAt, childrenAt, type SyntaxNode } from './syntax'
import { constantOf, extern, unknown, type Value } from './values'

export function runImport(run: Interpreter, node: SyntaxNode, frame: Frame): void {
  if (node.type === 'import_statement') {
    for (const name of childrenAt(node, 'name')) importModule(run, name, frame)
    return
  }
  const from = childAt(node, 'module_name')
  if (from === undefined) return
  const module =
    from.type === 'relative_import' ? relative(run, from, frame) : run.module(from.text, node, frame)
  if (node.children.some(({ type }) => type === 'wildcard_import')) return importAll(module, frame)
  for (const name of childrenAt(node, 'name')) {
    const imported = name.type === 'aliased_import' ? childAt(name, 'name')!.text : name.text
    const local = name.type === 'aliased_import' ? childAt(name, 'alias')!.text : imported
    put(frame, local, memberOf(run, { module, name: imported, from }, frame))
  }
}

/** Returns the module of `importlib.import_module` and `__import__`; a name that is not constant is an obstacle. */
export function importDynamically(run: Interpreter, node: SyntaxNode, frame: Frame): Value {
  const argument = childAt(node, 'arguments')?.children[0]
  const name = argument === undefined ? undefined : constantOf(run.evaluate(argument, frame))
  if (typeof name === 'string' && !name.startsWith('.')) return run.module(name, node, frame)
  run.project.obstacle(
    frame.scope.file.path,
    node.line,
    'imports a module whose name is known only at run time',
  )
  return unknown()
}

function importModule(run: Interpreter, name: SyntaxNode, frame: Frame): void {
  if (name.type === 'aliased_import') {
    put(frame, childAt(name, 'alias')!.text, run.module(childAt(name, 'name')!.text, name, frame))
    return
  }
  const module = run.module(name.text, name, frame)
  const [top = '', ...inner] = name.text.split('.')
  if (inner.length === 0) return put(frame, top, module)
  // `import a.b` binds `a`; the module `b` was run.
  const before = frame.scope.names.get(top)
  if (before?.kind !== 'module') put(frame, top, run.module(top, name, frame))
}

/** A second import in a handler of ImportError is the exception. */
function put(frame: Frame, name: string, value: Value): void {
  if (frame.isRare && frame.scope.names.has(name)) return
  frame.scope.put(name, value)
}

function relative(run: Interpreter, from: SyntaxNode, frame: Frame): Value {
  const prefix = from.children.find(({ type }) => type === 'import_prefix')?.text ?? '.'
  const name = from.children.find(({ type }) => type === 'dotted_name')?.text ?? ''
  const dots = [...prefix].filter((letter) => letter === '.').length
  const module = run.relativeModule(dots, name, frame)
  if (module !== undefined) return module
  if (name === '') return unknown()
  run.noteUnresolved(`${prefix}${name}`, from, frame)
  return extern(`${prefix}${name}`)
}

interface Member {
  module: Value
  name: string
  from: SyntaxNode
}

function memberOf(run: Interpreter, { module, name, from }: Member, frame: Frame): Value {
  if (module.kind === 'module') {
    const found = module.scope.names.get(name) ?? run.submodule(module.scope, name, frame)
    if (found !== undefined) return found
    if (from.type === 'dotted_name') return run.module(`${from.text}.${name}`, from, frame)
    return unknown()
  }
  if (module.kind === 'extern') return extern(`${module.name}.${name}`)
  // `from . import x` where the package has no __init__.py
  const dots = from.children.find(({ type }) => type === 'import_prefix')?.text.length ?? 0
  return dots > 0 && from.children.length === 1
    ? (run.relativeModule(dots, name, frame) ?? unknown())
    : unknown()
}

function importAll(module: Value, frame: Frame): void {
  if (module.kind === 'extern') frame.scope.stars.push(module.name)
  if (module.kind !== 'module') return
  for (const [name, value] of module.scope.names) if (!name.startsWith('_')) frame.scope.put(name, value)
  frame.scope.stars.push(...module.scope.stars)
}
