import { checkpointId } from '../core/checkpoint'

/** No instant is later; the index of jobs counts down from it. */
const LATEST_MS = 999_999_999_999_999

/** The keys of the object store; design and protocol in docs/reference/runner-protocol.md. Every document has exactly one writer. */
export const layout = {
  /** `{id}`: whose store this is. Put once by the first worker or client. */
  deployment: () => 'deployment.json',
  /** `{check}`: which key the deployment has, without the key. Put once by the first worker or client. */
  deploymentKey: () => 'deployment-key.json',
  /** The runner program, content-addressed, so that a running job keeps the one it was started with. */
  runner: (sha256: string) => `runners/${sha256}.pyz`,
  market: (backend: string, sha256: string) => `market/${backend}/${sha256}.json`,

  /** Where the machines of a backend have ever been looked for: what is left in a place that nobody looks at any more can be told. */
  places: (backend: string) => `places/${backend}/`,
  place: (backend: string, place: string) => `places/${backend}/${place}.json`,

  /** One empty object for each job, newest first: a store lists keys in their order. */
  submissions: () => 'submissions/',
  submission: (submittedAtMs: number, jobId: string) =>
    `submissions/${String(LATEST_MS - submittedAtMs).padStart(15, '0')}-${jobId}`,
  /** Jobs in line for machines, by age, and which job of a wish may order now; docs/reference/waiting.md. */
  waiting: () => 'waiting/',

  jobs: () => 'jobs/',
  job: (jobId: string) => `jobs/${jobId}/`,
  records: (jobId: string) => `jobs/${jobId}/record/`,
  record: (jobId: string, seq: number) => `jobs/${jobId}/record/${String(seq).padStart(6, '0')}.json`,
  bundle: (jobId: string, sha256: string) => `jobs/${jobId}/bundle/${sha256}.tar.gz`,
  /** The job's secrets, sealed with the deployment's key; deleted when the job ends. */
  secrets: (jobId: string) => `jobs/${jobId}/secrets.sealed`,

  attempts: (jobId: string) => `jobs/${jobId}/attempts/`,
  attempt: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/`,
  order: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/order.json`,
  /** The machine's handle, as soon as it is known. */
  machine: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/machine.json`,
  /** Sends of the order to a provider that recognises no repeated order (`storage/sends.ts`). */
  sends: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/sends/`,
  send: (jobId: string, attempt: number, seq: number) =>
    `jobs/${jobId}/attempts/${attempt}/sends/${String(seq).padStart(6, '0')}.json`,
  sendOutcome: (jobId: string, attempt: number, seq: number) =>
    `jobs/${jobId}/attempts/${attempt}/sends/${String(seq).padStart(6, '0')}-outcome.json`,
  /** Which machine works on the attempt: should a provider have made two, the second does nothing. */
  claim: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/claim.json`,
  lease: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/lease.json`,
  limits: (jobId: string, attempt: number, seq: number) =>
    `jobs/${jobId}/attempts/${attempt}/limits/${String(seq).padStart(6, '0')}.json`,
  drain: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/drain.json`,
  /** Shorter windows for a drain that has begun. */
  shorterDrains: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/drains/`,
  shorterDrain: (jobId: string, attempt: number, seq: number) =>
    `jobs/${jobId}/attempts/${attempt}/drains/${String(seq).padStart(6, '0')}.json`,
  beat: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/beat.json`,
  /** What the attempt was restored from, and what became of it. */
  restores: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/restores.json`,
  result: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/result.json`,
  attemptSecrets: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/secrets.sealed`,
  /** What could be learned of a machine whose runner does not speak, before it was ended. */
  diagnosis: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/diagnosis.json`,
  logs: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/logs/`,

  checkpoints: (jobId: string) => `jobs/${jobId}/checkpoints/`,
  checkpoint: (jobId: string, step: number, attempt: number) =>
    `jobs/${jobId}/checkpoints/${checkpointId(step, attempt)}/`,
  /** What one attempt has left. */
  artifactsOf: (jobId: string, attempt: number) => `jobs/${jobId}/attempts/${attempt}/artifacts/`,
} as const

/** The name of a checkpoint's manifest under the checkpoint's folder. Each revision is put once and never changed. */
export function manifestName(revision = 1): string {
  return revision === 1 ? 'manifest.json' : `manifest.${revision}.json`
}

/** The revision that the name of a manifest tells; `undefined` when it is no such name. */
export function parseManifestName(name: string): number | undefined {
  const match = /^manifest(?:\.([1-9]\d{0,8}))?\.json$/.exec(name)
  if (match === null) return undefined
  const revision = Number(match[1] ?? 1)
  return manifestName(revision) === name ? revision : undefined
}

/** Under a checkpoint's folder, the files that came with a revision of its manifest, by their relative paths. */
export function filesFolder(revision = 1): string {
  return revision === 1 ? 'files/' : `files.${revision}/`
}
