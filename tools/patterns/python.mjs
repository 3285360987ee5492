// The regular expressions of Python files, as JavaScript writes them.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

/** @returns the expressions as `{ file, line, source, flags }`; `source` is null if it is not constant */
export function patternsOfPython(root, files) {
  const args = [join(root, 'tools', 'patterns', 'python_patterns.py'), root, ...files]
  const { status, stdout, stderr } = spawnSync('python3', args, { encoding: 'utf8', maxBuffer: 2 ** 26 })
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout).map(({ file, line, ...pattern }) => ({ file, line, ...translated(pattern) }))
}

function translated({ source, flags, anchors, written }) {
  if (source === null) return { source, flags: '', written }
  const [, inline = ''] = /^\(\?([aimsx]+)\)/.exec(source) ?? []
  const all = new Set([...flags, ...inline])
  const bare = inline === '' ? source : source.slice(inline.length + 3)
  const plain = (all.has('x') ? withoutBlanks(bare) : bare)
    .replaceAll('(?P<', '(?<')
    .replaceAll('\\Z', '$')
    .replaceAll('\\A', '^')
  const around = { start: `^(?:${plain})`, both: `^(?:${plain})$` }
  const known = [...'ims'].filter((flag) => all.has(flag)).join('')
  return { source: new RegExp(around[anchors] ?? plain, known).source, flags: known, written }
}

/** An expression with the flag VERBOSE, without the blanks and comments that do not count. */
function withoutBlanks(text) {
  let kept = ''
  let isInClass = false
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]
    if (character === '\\') {
      kept += /[\s#]/.test(text[at + 1]) ? text[at + 1] : text.slice(at, at + 2)
      at += 1
    } else if (isInClass || !/[\s#]/.test(character)) {
      if (character === '[') isInClass = true
      if (character === ']') isInClass = false
      kept += character
    } else if (character === '#') while (at + 1 < text.length && text[at + 1] !== '\n') at += 1
  }
  return kept
}
