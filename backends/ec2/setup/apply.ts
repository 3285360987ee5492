import { setTimeout as sleep } from 'node:timers/promises'
import { defined } from '../../../core/defined'
import type { AccountPart, Step, Work } from '../../account'
import { ec2Error } from '../errors'
import { isUncertain } from './clients'
import { describeAccount } from './description'
import type { Driver, Found, Site } from './driver'
import { driverOf } from './drivers'
import { WHAT, type Piece } from './pieces'

/** A new resource may become visible only after a while. */
const LOOKS_AFTER_LOSS = 6
const LOOK_PAUSE_MS = 1_000
const MAKE_TRIES = 3

/** Reads the state of a piece; also notes its id for pieces that need it. */
export async function readPiece(piece: Piece, site: Site): Promise<AccountPart> {
  const part = { id: piece.id, what: WHAT[piece.kind], name: piece.name }
  try {
    const found = await driverOf(piece.kind).read(piece, site)
    if (found === undefined) return { ...part, state: 'missing', remarks: [] }
    site.ids.set(piece.id, found.id)
    const remarks = [...found.remarks, ...found.extras.map((id) => `${id} is one too many`)]
    const state = found.owner === 'ours' ? (remarks.length === 0 ? 'there' : 'differs') : found.owner
    const told = [...remarks, ...(found.notes ?? [])]
    return { ...part, ...(found.id === piece.name ? {} : { providerId: found.id }), state, remarks: told }
  } catch (error) {
    if (site.signal.aborted) throw error
    const { message } = ec2Error(error).failure
    return { ...part, state: 'unknown', remarks: [message] }
  }
}

/** Creates what is missing and corrects what differs, one after the other; a failure holds up only the pieces that depend on it. */
export async function applyAll(
  site: Site,
  { signal, onStep }: Work,
  pieces = describeAccount(site.choices),
): Promise<Step[]> {
  const steps: Step[] = []
  const lacking = new Set<string>()
  for (const piece of pieces) {
    if (signal.aborted) break
    const part = { id: piece.id, what: WHAT[piece.kind], name: piece.name }
    const waitsFor = piece.needs.find((id) => lacking.has(id))
    const step =
      waitsFor === undefined
        ? await applyOne(piece, site).catch((error: unknown): Omit<Step, 'part'> => failed(error))
        : { did: 'waits' as const, reason: `needs ${waitsFor}` }
    if (signal.aborted && step?.did === 'failed') break
    if (step === undefined) continue
    if (step.did === 'failed' || step.did === 'waits') lacking.add(piece.id)
    const told = { part, ...step }
    steps.push(told)
    onStep(told)
  }
  return steps
}

async function applyOne(piece: Piece, site: Site): Promise<Omit<Step, 'part'> | undefined> {
  const driver = driverOf(piece.kind)
  const found = await driver.read(piece, site)
  if (found === undefined) {
    const id = await makeOnce(driver, piece, site)
    site.ids.set(piece.id, id)
    await driver.mend(piece, id, site)
    return { did: 'made' }
  }
  site.ids.set(piece.id, found.id)
  if (found.owner === 'taken') return { did: 'failed', reason: `${piece.name} ${found.remarks.join(', ')}` }
  if (found.owner === 'theirs' || (found.remarks.length === 0 && found.extras.length === 0)) return undefined
  for (const extra of found.extras) await driver.remove(extra, { ...site, hasData: false })
  await driver.mend(piece, found.id, site)
  return {
    did: 'mended',
    reason: [...found.remarks, ...found.extras.map((id) => `${id} too many`)].join(', '),
  }
}

/** A request without an answer may have succeeded: its result is looked up before another one is sent. */
async function makeOnce(driver: Driver<Piece>, piece: Piece, site: Site): Promise<string> {
  for (let tries = 1; ; tries++) {
    try {
      return await driver.make(piece, site)
    } catch (error) {
      if (!isUncertain(error) || site.signal.aborted) throw error
      const found = await lookFor(driver, piece, site)
      if (found !== undefined) return found.id
      if (tries === MAKE_TRIES) throw error
    }
  }
}

async function lookFor(driver: Driver<Piece>, piece: Piece, site: Site): Promise<Found | undefined> {
  for (let look = 1; look <= LOOKS_AFTER_LOSS; look++) {
    const found = await driver.read(piece, site)
    if (found !== undefined && found.owner !== 'taken') return found
    await sleep(LOOK_PAUSE_MS, undefined, { signal: site.signal }).catch(() => undefined)
  }
  return undefined
}

const NAMED_ACTION = /not authorized to perform: ([\w-]+:\w+)/

export function failed(error: unknown): Omit<Step, 'part'> {
  const { message, code } = ec2Error(error).failure
  const permission = NAMED_ACTION.exec(message)?.[1]
  const reason = code === undefined || message.includes(code) ? message : `${message} (${code})`
  return { did: 'failed', reason, ...defined({ permission }) }
}
