/** Comprehensions: `[f(x) for x in items]`, and those of dictionaries and sets. */
import { assign, assignNext } from './assignments'
import type { Frame, Interpreter } from './interpreter'
import { itemsOf, loopAt, roundsOf } from './iteration'
import { childAt, parts, type SyntaxNode } from './syntax'
import { dict, list, taintOf, textOf, unknown, type Value } from './values'

export function comprehension(run: Interpreter, node: SyntaxNode, frame: Frame): Value {
  const clauses = node.children.filter(({ type }) => type === 'for_in_clause')
  const loops = [...frame.loops]
  const iterated = clauses.map((clause) => {
    const value = run.evaluate(childAt(clause, 'right')!, frame)
    const left = childAt(clause, 'left')!
    assign(run, { target: left, value: unknown(value) }, frame)
    loops.push(
      loopAt(run, { node: clause, variable: left.text, iterated: value, kind: 'for', canEnd: true }, frame),
    )
    return value
  })
  for (const clause of node.children.filter(({ type }) => type === 'if_clause'))
    for (const part of parts(clause)) run.evaluate(part, frame)
  const body = childAt(node, 'body')!
  const inside = { ...frame, loops }
  const results = (at: Frame = inside): Value[] =>
    (body.type === 'pair' ? parts(body) : [body]).map((part) => run.evaluate(part, at))
  const [clause] = clauses
  const rounds =
    clauses.length === 1 ? roundsOf(iterated[0]!, { left: childAt(clause!, 'left')!, body }) : undefined
  const known = rounds ?? (clauses.length === 1 ? itemsOf(iterated[0]!) : undefined)
  if (known !== undefined) {
    const each = known.map((value) => {
      assignNext(run, { target: childAt(clauses[0]!, 'left')!, value }, frame)
      return results(rounds === undefined ? inside : frame)
    })
    if (body.type !== 'pair') return list(each.flat())
    const entries = each.map(([key, value]) => [textOf(key) ?? '', value!] as const)
    return { ...dict(new Map(entries)), ...taintOf(...each.flat()) }
  }
  const items = results()
  return { ...unknown(taintOf(...iterated, ...items)), kind: 'unknown', each: items.at(-1)! }
}
