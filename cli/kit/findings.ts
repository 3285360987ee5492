/** The result of a check. */
export interface Finding {
  check: string
  /** `error` keeps jobs from running; a `warning` may. */
  status: 'ok' | 'warning' | 'error'
  message: string
  /** The fix, if something needs fixing. */
  remedy?: string
}

/** A finding without the name of its check. */
export type CheckFinding = Omit<Finding, 'check'>

export const ok = (message: string): CheckFinding => ({ status: 'ok', message })
export const warning = (message: string, remedy: string): CheckFinding => ({
  status: 'warning',
  message,
  remedy,
})
export const error = (message: string, remedy: string): CheckFinding => ({ status: 'error', message, remedy })
