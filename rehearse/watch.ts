import { dirname } from 'node:path'
import type { Checkpoint, Manifest } from '../core/job/checkpoint'
import type { Beat } from '../core/documents'
import { parseBeat, parseManifest, parseRestores, parseResult } from '../intake/documents'
import { readManifest, readRevision, surveyCheckpoints } from '../storage/checkpoints'
import { ignoreBadDocument, readDocument } from '../storage/json'
import { layout } from '../storage/layout'
import type { ObjectStore } from '../storage/store'
import { savedOutside, signatureOf } from './folder'
import { readKept, type Kept } from './kept'
import { lineThatNames } from './script'
import type { RehearsedAttempt, RehearsedCheckpoint, OutsideFile, RehearsedRestore } from './seen'
import type { Host, Machine } from './host'

/** Observes one attempt from outside: its beats, its checkpoint directory, and the manifests of its checkpoints. */
export class AttemptWatch {
  readonly seen: RehearsedAttempt
  /** Times of observed changes in the checkpoint directory, oldest first, from the start of the command. */
  readonly changes: number[] = []
  /** Time at which the first step of this attempt was seen. */
  firstStepAtMs: number | null = null
  /** Time at which the command was first seen running. */
  runningSinceMs: number | null = null
  /** Files that the program wrote elsewhere in its working directory, newest first. */
  outside: OutsideFile[] = []
  /** Digests of its outputs by path; empty unless it succeeded. */
  outputs: Record<string, string> = {}
  /** Content of its checkpoint directory when it was gone. */
  kept: Kept | undefined
  /** Modification time of files that came with the code. */
  private codeUntilMs = Infinity
  private beat: Beat | undefined
  private signature: string | undefined
  private listedAtMs = 0
  private readonly store: ObjectStore
  private readonly saved = new Map<string, RehearsedCheckpoint>()

  constructor(
    private readonly host: Pick<Host, 'store' | 'pace'>,
    readonly machine: Machine,
    private readonly now: () => number,
  ) {
    this.store = host.store
    const beganAtMs = now()
    this.seen = {
      number: machine.attempt,
      beganAtMs,
      endedAtMs: beganAtMs,
      steps: [],
      restores: [],
      saved: [],
      strike: null,
      end: null,
      warning: null,
    }
  }

  /** Whether its runner has reported. */
  get hasSpoken(): boolean {
    return this.beat !== undefined || this.seen.end !== null
  }

  get isRunning(): boolean {
    return this.beat?.phase === 'running'
  }

  /** Progress of the whole training, from 0 to 1; null if the program does not report it. */
  get part(): number | null {
    const { percent, step, stepsTotal } = this.beat?.progress ?? {}
    if (percent !== undefined) return percent / 100
    return step == null || stepsTotal == null || stepsTotal <= 0 ? null : step / stepsTotal
  }

  async poll(): Promise<void> {
    const { jobId, attempt } = this.machine
    const beat = await readDocument(this.store, layout.beat(jobId, attempt), parseBeat).catch(
      ignoreBadDocument,
    )
    if (beat !== undefined && beat.seq !== this.beat?.seq) this.take(beat)
    if (this.isRunning) {
      this.runningSinceMs ??= this.now()
      this.scanFolder()
    }
    if (this.now() - this.listedAtMs < this.host.pace.listMs) return
    await this.list()
    this.listedAtMs = this.now()
  }

  /** Reads the remaining documents once the machine is gone. */
  async finish(): Promise<void> {
    await this.poll()
    await this.list()
    const { jobId, attempt } = this.machine
    const result = await readDocument(this.store, layout.result(jobId, attempt), parseResult)
    if (result !== undefined) {
      const { outcome, reason, message, exitCode } = result
      this.seen.end = { outcome, reason, message, exitCode }
      if (outcome === 'succeeded')
        this.outputs = Object.fromEntries(result.artifacts.map(({ path, sha256 }) => [path, sha256]))
      this.seen.warning = result.warning?.text ?? this.seen.warning
      if (result.trackers !== undefined) this.seen.trackers = result.trackers
    }
    this.outside = this.savedOutside()
    const { folders } = this.machine
    if (folders !== undefined) {
      // Their parent is the directory of the job, or of the attempt.
      const roots = [dirname(folders.work)]
      this.kept = readKept(folders.checkpoints, { roots, jobId })
    }
    this.seen.restores = await this.readRestores()
    this.seen.saved = this.savedSoFar
    this.seen.endedAtMs = this.now()
  }

  private savedOutside(): OutsideFile[] {
    const { folders } = this.machine
    if (folders === undefined) return []
    return savedOutside(folders.work, folders.checkpoints, this.codeUntilMs).map((file, index) => {
      // Advice mentions the newest only, and reading all the code takes time.
      const line = index === 0 ? lineThatNames(file.path, folders.work) : undefined
      return line === undefined ? file : { ...file, line }
    })
  }

  get savedCount(): number {
    return this.saved.size
  }

  get savedSoFar(): RehearsedCheckpoint[] {
    return [...this.saved.values()].sort((a, b) => a.savedAtMs - b.savedAtMs)
  }

  private take(beat: Beat): void {
    this.beat = beat
    const { progress, warning, trackers } = beat
    if (trackers !== undefined) this.seen.trackers = trackers
    if (warning !== undefined) this.seen.warning = warning?.text ?? null
    if (progress === null) return
    const { step, loss } = progress
    const { steps } = this.seen
    if (step === null) return
    const last = steps.at(-1)
    if (last?.step === step) last.loss ??= loss
    else steps.push({ step, loss, atMs: progress.atMs })
    this.firstStepAtMs ??= progress.atMs
  }

  private scanFolder(): void {
    const { folders } = this.machine
    if (folders === undefined) return
    const signature = signatureOf(folders.checkpoints)
    if (this.signature === undefined) this.codeUntilMs = this.now()
    else if (this.signature !== signature) this.changes.push(this.now())
    this.signature = signature
  }

  private async list(): Promise<void> {
    const { jobId, attempt } = this.machine
    const { existing } = await surveyCheckpoints(this.store, jobId)
    for (const checkpoint of existing.filter((each) => each.attempt === attempt)) {
      if (this.saved.get(checkpoint.id)?.revision === checkpoint.manifests[0]!.revision) continue
      const manifest = await readManifest(this.store, { jobId, checkpoint }, parseManifest)
      if (manifest !== undefined) this.saved.set(checkpoint.id, seenOf(checkpoint, manifest))
    }
  }

  private async readRestores(): Promise<RehearsedRestore[]> {
    const { jobId, attempt } = this.machine
    const list = await readDocument(this.store, layout.restores(jobId, attempt), parseRestores)
    const found: RehearsedRestore[] = []
    for (const { checkpoint, revision, atMs, outcome, message } of list?.restores ?? []) {
      const manifest =
        (await readRevision(this.store, { jobId, checkpoint, revision }, parseManifest)) ??
        (await readManifest(this.store, { jobId, checkpoint }, parseManifest))
      if (manifest !== undefined)
        found.push({ checkpoint: seenOf(checkpoint, manifest), atMs, outcome, message })
    }
    return found
  }
}

function seenOf({ id, step, attempt }: Checkpoint, manifest: Manifest): RehearsedCheckpoint {
  const { isStepKnown, revision, state, evidence, savedAtMs, saveMs, totalBytes } = manifest
  return {
    id,
    step,
    attempt,
    isStepKnown,
    revision,
    state,
    evidence,
    savedAtMs,
    totalBytes,
    saveMs,
    files: manifest.files
      .filter(({ isOlder }) => isOlder !== true)
      .map(({ path, sizeBytes, digest, modifiedAtMs }) => ({ path, sizeBytes, digest, modifiedAtMs })),
  }
}
