/** Changes of a recorded decision as people write them: `price.spot=+50%`, `deadline=+6h`, `backend=-ec2:spot`. */
import { OBJECTIVES } from '../core/job/job'
import { WHAT_IF_KEYS, type Adjustment, type WhatIf, type WhatIfKey } from '../core/job/what-if'
import { nearest } from './nearest'
import { parseDeadline, parseDuration, parseMoney, quote, UnitError } from './units'
import { parseBackendChoice } from './written'

/** Form of each key, for errors and the help. */
export const WHAT_IF_FORMS: Readonly<Record<WhatIfKey, string>> = {
  price: 'price.spot=+50%, price.p5.48xlarge=12.50 (also a backend, an accelerator or ec2/spot/p5.48xlarge)',
  speed: 'speed.A100=0.8 (times the speed that was assumed)',
  deadline: 'deadline=+6h, =36h (after the submission), =2027-01-31T18:00Z or =none',
  budget: 'budget=+20usd, =50usd or =none',
  duration: 'duration=+2h, =+20% or =12h',
  backend: 'backend=-ec2:spot (without it) or =ec2 (nothing else)',
  optimize: `optimize=${OBJECTIVES.join('|')}`,
  interruptible: 'interruptible=yes or =no',
}

/** Throws a `UnitError` that lists the keys, or the forms of the key's value. */
export function parseWhatIf(text: string): WhatIf {
  const match = /^([a-z]+)(?:\.([^=\s]+))?\s*=(.*)$/i.exec(text.trim())
  if (match === null) throw new UnitError(`${quote(text)} is not KEY=VALUE`, allForms())
  const [, name = '', of, value = ''] = match
  const key = WHAT_IF_KEYS.find((known) => known === name)
  if (key === undefined) {
    const meant = nearest(name, WHAT_IF_KEYS)
    const remedy = meant === undefined ? allForms() : `write ${WHAT_IF_FORMS[meant as WhatIfKey]}`
    throw new UnitError(`${quote(name)} is not a key of --what-if (${WHAT_IF_KEYS.join(', ')})`, remedy)
  }
  if (of !== undefined && key !== 'price' && key !== 'speed')
    throw new UnitError(`${key} applies to the whole job, not to ${quote(of)}`, `write ${WHAT_IF_FORMS[key]}`)
  const read = (): WhatIf => PARSERS[key](value.trim(), of)
  try {
    return read()
  } catch (error) {
    if (!(error instanceof UnitError)) throw error
    throw new UnitError(error.message, `write ${WHAT_IF_FORMS[key]}`)
  }
}

function allForms(): string {
  return `write one of: ${Object.values(WHAT_IF_FORMS).join('; ')}`
}

const PARSERS: Readonly<Record<WhatIfKey, (value: string, of: string | undefined) => WhatIf>> = {
  price: (value, of) => ({ key: 'price', of: of ?? null, adjustment: adjustmentOf(value, parseMoney) }),
  speed: (value, of) => {
    if (of === undefined) throw new UnitError('speed needs an accelerator', '')
    return { key: 'speed', of, factor: factorOf(value) }
  },
  deadline: (value) => ({ key: 'deadline', adjustment: isNone(value) ? null : deadlineOf(value) }),
  budget: (value) => ({
    key: 'budget',
    adjustment: isNone(value) ? null : adjustmentOf(value, parseMoney),
  }),
  duration: (value) => ({ key: 'duration', adjustment: positive(value, adjustmentOf(value, parseDuration)) }),
  backend: (value) => ({
    key: 'backend',
    choice: parseBackendChoice(value.replace(/^-/, '')),
    isLeftOut: value.startsWith('-'),
  }),
  optimize: (value) => {
    const objective = OBJECTIVES.find((known) => known === (value === 'speed' ? 'time' : value))
    if (objective === undefined) throw new UnitError(`${quote(value)} is not something to optimize for`, '')
    return { key: 'optimize', objective }
  },
  interruptible: (value) => {
    const isInterruptible = { yes: true, true: true, no: false, false: false }[value.toLowerCase()]
    if (isInterruptible === undefined) throw new UnitError(`${quote(value)} is neither yes nor no`, '')
    return { key: 'interruptible', isInterruptible }
  },
}

const isNone = (value: string): boolean => value.toLowerCase() === 'none'

/** `+50%`, `-20%`, `+6h`, `-2usd`, or the value itself. */
function adjustmentOf(text: string, parse: (text: string) => number): Adjustment {
  const percent = /^([+-])\s*(\d+(?:\.\d+)?)\s*%$/.exec(text)
  if (percent !== null) {
    const factor = 1 + (percent[1] === '-' ? -1 : 1) * (Number(percent[2]) / 100)
    if (factor < 0) throw new UnitError(`${quote(text)} subtracts more than the whole`, '')
    return { by: 'factor', value: factor }
  }
  const sign = /^[+-]/.exec(text)?.[0]
  if (sign === undefined) return { by: 'set', value: parse(text) }
  return { by: 'add', value: (sign === '-' ? -1 : 1) * parse(text.slice(1)) }
}

function deadlineOf(text: string): Extract<WhatIf, { key: 'deadline' }>['adjustment'] {
  if (/^[+-]/.test(text)) return { by: 'add', value: adjustmentOf(text, parseDuration).value }
  const deadline = parseDeadline(text)
  return 'atMs' in deadline ? { by: 'set', value: deadline.atMs } : { by: 'after', value: deadline.afterMs }
}

function factorOf(text: string): number {
  const { by, value } = adjustmentOf(text, (plain) =>
    /^(?:\d+|\d*\.\d+)$/.test(plain) ? Number(plain) : Number.NaN,
  )
  if (by === 'add' || !(value > 0 && value <= 1_000))
    throw new UnitError(`${quote(text)} is not a factor above 0`, '')
  return value
}

function positive(text: string, adjustment: Adjustment): Adjustment {
  if (adjustment.by !== 'add' && adjustment.value <= 0) throw new UnitError(`${quote(text)} is too small`, '')
  return adjustment
}
