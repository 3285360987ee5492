/**
 * The definitions of an API, less what a program cannot reach: to build all of Temporal's takes longer than all else that a short
 * command does. What stays: messages, enumerations and services that the code names in full, the calls of these services whose
 * names occur in it, and whatever those are made of.
 *
 * `root` is a protobufjs Root as JSON and is left as it is; `code` is all the JavaScript that will use it.
 */
export function leanProto(root, code) {
  const words = new Set(code.match(/\w+/g))
  const definitions = new Map(definitionsIn(root))
  const kept = new Set()
  const keep = (name) => {
    if (kept.has(name) || !definitions.has(name)) return
    kept.add(name)
    // The message that it is defined in, if it is.
    keep(scopeOf(name))
    for (const used of namesUsedBy(definitions.get(name), words)) keep(resolved(definitions, name, used))
  }
  for (const path of code.match(/\w+(?:\.\w+)+/g) ?? []) partsOf(path).forEach(keep)
  return pruned(root, '', { kept, words })
}

/** Every message, enumeration and service with its full name. */
function definitionsIn({ nested = {} }, prefix = '') {
  return Object.entries(nested).flatMap(([name, inner]) => [
    ...(isDefinition(inner) ? [[`${prefix}${name}`, inner]] : []),
    ...definitionsIn(inner, `${prefix}${name}.`),
  ])
}

/** Not a mere namespace, nor an option. */
function isDefinition({ fields, values, methods }) {
  return fields !== undefined || values !== undefined || methods !== undefined
}

/** `x.a.b.C.d` may mean `a.b.C`: code reaches the root by a name of its own, and goes on to members. */
function partsOf(path) {
  const words = path.split('.')
  return words.flatMap((_, from) =>
    words.slice(from).map((_, more) => words.slice(from, from + more + 1).join('.')),
  )
}

function scopeOf(name) {
  return name.slice(0, Math.max(0, name.lastIndexOf('.')))
}

function namesUsedBy({ fields = {}, methods = {} }, words) {
  return [
    ...Object.values(fields).map(({ type }) => type),
    ...callsIn(methods, words).flatMap(([, { requestType, responseType }]) => [requestType, responseType]),
  ]
}

/** Code calls `GetSystemInfo` as `getSystemInfo`. */
function callsIn(methods, words) {
  return Object.entries(methods).filter(([name]) => words.has(`${name[0].toLowerCase()}${name.slice(1)}`))
}

/** What a name means inside of a definition: the innermost that there is. */
function resolved(definitions, within, name) {
  if (name.startsWith('.')) return name.slice(1)
  for (let scope = within; scope !== ''; scope = scopeOf(scope)) {
    if (definitions.has(`${scope}.${name}`)) return `${scope}.${name}`
  }
  return name
}

function pruned({ nested = {}, methods, ...rest }, name, reach) {
  const inner = Object.entries(nested).flatMap(([key, value]) => {
    const left = pruned(value, name === '' ? key : `${name}.${key}`, reach)
    return left === undefined ? [] : [[key, left]]
  })
  if (inner.length === 0 && !reach.kept.has(name)) return undefined
  const calls = methods && callsIn(methods, reach.words).map(([key, call]) => [key, withoutOptions(call)])
  return {
    ...rest,
    ...(calls === undefined ? {} : { methods: Object.fromEntries(calls) }),
    ...(inner.length === 0 ? {} : { nested: Object.fromEntries(inner) }),
  }
}

/** They tell how to call the same by HTTP. */
function withoutOptions(call) {
  return { ...call, options: undefined, parsedOptions: undefined }
}
