/** Setting up an account of a provider: what `crucible setup` shows and does, in no provider's words. */

export interface AccountWish {
  region?: string
  /** Which credentials, where there are several. */
  profile?: string
  /** What the names of everything begin with, and what tells one set-up from another. */
  prefix: string
  /** Name of the bucket; one made of account and Region when missing. */
  bucket?: string
  /** A network of its own also where the account has one. */
  hasOwnNetwork: boolean
}

/** One thing that the account needs. */
export interface AccountPart {
  id: string
  /** `role`, `bucket`, ... */
  what: string
  name: string
  /** The provider's own id, where there is one and it is not the name. */
  providerId?: string
  /**
   * `there`: as it should be. `differs`: ours, but not as it should be. `missing`. `theirs`: it is used, and belongs to somebody
   * else. `taken`: something of that name is in the way. `unknown`: it could not be looked at.
   */
  state: 'there' | 'differs' | 'missing' | 'theirs' | 'taken' | 'unknown'
  /** What differs, is in the way or could not be looked at, and what set-up leaves unchanged on purpose. */
  remarks: string[]
}

export interface QuotaState {
  code: string
  name: string
  /** What is allowed now, in `unit`; missing where it could not be read. */
  value?: number
  /** What a request asks for. */
  wanted: number
  unit: string
  /** What became of the last request, in words. */
  request?: string
  /** A request may be made: it is too little, and none is open. */
  isAskable: boolean
}

export interface Survey {
  /** Of whom and where: lines for people. */
  place: Record<'account' | 'region' | 'identity' | 'prefix', string>
  parts: AccountPart[]
  /** What it costs, what is left out and why, sentences for people. */
  remarks: string[]
  quotas: QuotaState[]
  /** What to put into the environment of client and workers; what is not known yet is left out. */
  settings: Record<string, string>
}

export interface Step {
  part: Pick<AccountPart, 'id' | 'what' | 'name'>
  did: 'made' | 'mended' | 'removed' | 'kept' | 'failed' | 'waits'
  /** Why it failed, was kept or waits. */
  reason?: string
  /** A permission that was missing. */
  permission?: string
}

export interface Work {
  signal: AbortSignal
  /** Told of every step at once. */
  onStep: (step: Step) => void
}

/** Why nothing is removed. */
export interface Obstacle {
  message: string
  remedy: string
}

export interface Removal {
  place: Survey['place']
  parts: AccountPart[]
  obstacles: Obstacle[]
}

/** Throws a `BackendError` for what makes going on useless, such as no credentials. */
export interface AccountSetup {
  /** What there is, differs and is missing. Changes nothing. */
  survey(signal: AbortSignal): Promise<Survey>
  /** Makes what is missing and mends what differs. May be called again at any time, also after it was killed. */
  apply(work: Work): Promise<Step[]>
  /** Asks once for each quota that is too small and that nobody has asked for. */
  askForQuotas(work: Pick<Work, 'signal'>): Promise<QuotaState[]>
  /** What a removal would remove, and what stands against it. */
  removal(signal: AbortSignal): Promise<Removal>
  remove(work: Work & { hasData: boolean }): Promise<Step[]>
  /** The same account as files for Terraform, by name. Needs no credentials. */
  terraform(signal: AbortSignal): Promise<Record<string, string>>
}
