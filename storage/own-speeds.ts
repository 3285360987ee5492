import type { OwnSpeeds } from '../core/job/own-speeds'
import { layout } from './layout'
import { NewestDocuments } from './newest'
import type { ObjectStore } from './store'

const SPEEDS = new NewestDocuments(layout.allOwnSpeeds(), parseSpeeds)

/**
 * Stores the speeds that a job measured. Repeated calls have the same key and content.
 *
 * @param finishedAtMs as on the job's record
 */
export function putOwnSpeeds(store: ObjectStore, speeds: OwnSpeeds, finishedAtMs: number): Promise<void> {
  return SPEEDS.put(store, layout.ownSpeeds(finishedAtMs, speeds.jobId), speeds)
}

/** The speeds that the deployment's newest jobs measured, newest first. */
export function readOwnSpeeds(store: ObjectStore): Promise<OwnSpeeds[]> {
  return SPEEDS.read(store)
}

/** Only this file writes them, so a brief check of their shape suffices. */
function parseSpeeds(text: string): OwnSpeeds {
  const speeds = JSON.parse(text) as Partial<OwnSpeeds> | null
  const areUsable = speeds?.paces?.every(({ steps, ms }) => steps > 0 && ms > 0)
  if (areUsable !== true || speeds?.jobId === undefined) throw new Error('it has no speeds of a job')
  return speeds as OwnSpeeds
}
