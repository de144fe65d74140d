/** The plugin that mirrors opencode's sessions into Turnwire. opencode takes the default export. */
import { server } from "./plugin.js";

export default { id: "turnwire", server };
