/** Functions that a command line needs before anything else is loaded. */
export { replaceAws, withDevEnvironment } from '../storage/home'
