/**
 * Reduces the definitions of an API to the part that a program can reach: building all of Temporal's definitions takes longer than the rest
 * of a short command. It keeps the messages, enumerations and services that the code names in full, the calls of these services whose names
 * occur in it, and all their dependencies.
 *
 * `root` is a protobufjs Root as JSON and is not modified; `code` is all the JavaScript that will use it.
 */
export function leanProto(root, code) {
  const words = new Set(code.match(/\w+/g))
  const definitions = new Map(definitionsIn(root))
  const kept = new Set()
  const keep = (name) => {
    if (kept.has(name) || !definitions.has(name)) return
    kept.add(name)
    // The enclosing message of a nested definition.
    keep(scopeOf(name))
    for (const used of namesUsedBy(definitions.get(name), words)) keep(resolved(definitions, name, used))
  }
  for (const path of code.match(/\w+(?:\.\w+)+/g) ?? []) partsOf(path).forEach(keep)
  return pruned(root, '', { kept, words })
}

/** Returns every message, enumeration and service with its full name. */
function definitionsIn({ nested = {} }, prefix = '') {
  return Object.entries(nested).flatMap(([name, inner]) => [
    ...(isDefinition(inner) ? [[`${prefix}${name}`, inner]] : []),
    ...definitionsIn(inner, `${prefix}${name}.`),
  ])
}

/** Excludes plain namespaces and options. */
function isDefinition({ fields, values, methods }) {
  return fields !== undefined || values !== undefined || methods !== undefined
}

/** `x.a.b.C.d` may mean `a.b.C`: code names the root differently, and appends members. */
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

/** Resolves a name inside a definition to the innermost match. */
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

/** The options only describe HTTP access to the same calls. */
function withoutOptions(call) {
  return { ...call, options: undefined, parsedOptions: undefined }
}
