/** What submitters and operators read where jobs are not kept apart. */
export const SHARED_USER =
  "Local jobs without an `image` run as one user: each can read the others' files and the deployment's key."
export const SHARED_USER_REMEDY =
  'Run only code that you trust, give jobs an `image`, or run the workers as root on Linux.'
/** A warning for deployments whose simulated machines have no users of their own, as an ordinary user started them. */
export const SHARED_CLOUD = "Its machines run as you: jobs can read your files and the deployment's key."
