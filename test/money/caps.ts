import { formatUsd } from '../../core/money/money'
import { formatDuration } from '../../core/time/time'
import { CAPABILITIES, KINDS, type Kind } from './providers'
import type { Cap } from './run'

const LIKE: Record<Kind, string> = { ec2: 'like EC2', modal: 'like Modal', lambda: 'like Lambda' }

/** Which caps held, and by how much the others were passed, by kind of provider. */
export function capsInWords(caps: readonly Cap[]): string[] {
  return ['Caps of attempts, by kind of provider:', ...KINDS.flatMap((kind) => linesOf(kind, caps))]
}

function linesOf(kind: Kind, all: readonly Cap[]): string[] {
  const caps = all.filter((one) => one.kind === kind)
  const count = `  ${LIKE[kind]}: ${caps.length} attempts`
  if (CAPABILITIES[kind].billsUntil === 'exit')
    return [`${count}, which end their own bill: ${heldInWords(caps)}`]
  return [
    `${count}, billed until a call ends them, named by the plan and accepted by the job: ${heldInWords(caps)}`,
    `    with gc --alone on another host: ${excessInWords(caps.filter(({ hasAlone }) => hasAlone))}`,
    `    without it: ${excessInWords(caps.filter(({ hasAlone }) => !hasAlone))}`,
  ]
}

function heldInWords(caps: readonly Cap[]): string {
  const passed = caps.filter(({ microUsd }) => microUsd > 0).length
  return passed === 0 ? 'held in all' : `held in ${caps.length - passed}, passed in ${passed}`
}

function excessInWords(caps: readonly Cap[]): string {
  const passed = caps.filter(({ microUsd }) => microUsd > 0)
  if (passed.length === 0) return `${caps.length} attempts, none passed`
  const sorted = (of: (cap: Cap) => number): number[] => passed.map(of).sort((a, b) => a - b)
  const [usd, lasts] = [sorted(({ microUsd }) => microUsd), sorted(({ lastMs }) => lastMs)]
  const median = (values: number[]): number => values[Math.floor((values.length - 1) / 2)]!
  return (
    `${caps.length} attempts, ${passed.length} passed, ` +
    `by ${formatUsd(median(usd))} (median) to ${formatUsd(usd.at(-1)!)}, ` +
    `${formatDuration(median(lasts))} to ${formatDuration(lasts.at(-1)!)} longer than paid for`
  )
}
